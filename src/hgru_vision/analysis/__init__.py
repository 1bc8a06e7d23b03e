"""What networks do and how well: measures and figures from trajectories, weights and the ledger."""
