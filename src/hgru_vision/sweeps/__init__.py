"""Many runs: what to run (`grid`), where (`launch`), and what came of it (`ledger`)."""
