"""Every constant of Linsley et al. (NeurIPS 2018), with its place in the paper.

"Main" is the main text, "Supp." the supplementary material. Nothing else in the package holds one
of these numbers. Where the text and the authors' released code differ, the text stands here and
`docs/differences.md` tells the rest.
"""

# -- The circuit: Main, section 2 and "Recurrent models" ------------------------------------------
CHANNELS = 25  # K; "with an equal number of channels as their input layer (25 channels)"
KERNEL_SIZE = 15  # S; "15x15 horizontal connection kernels (W)"
TIMESTEPS = 8  # T; the full hGRU. The shorter ones:
SHORTER_TIMESTEPS = (6, 4)
HGRU_PARAMETERS = 74_558  # 15*15*25*26/2 + 2*(25*25 + 25) + 5*25 + 8, W counted as symmetric

# -- Pathfinder: Main, "Stimulus design"; Supp., "The Pathfinder challenge" -----------------------
PATH_LENGTHS = (6, 9, 14)  # k
CANVAS = 150  # pixels on a side; "150x150 canvas"
PADDLES = 150  # "the total number of paddles in an image is 150"
DISTRACTOR_FRACTION = 3  # distractors have k/3 paddles
IMAGES = 1_000_000  # a dataset
TRAIN_FRACTION = 0.9  # 900,000 for training, 100,000 for testing

# -- Sizes, which the text does not give: the authors' released program, snakes2_wrapper.py, in
# pixels of a canvas that networks see at half its size -------------------------------------------
RELEASED_CANVAS = 300
PADDLE_LENGTH = 5  # l
PADDLE_THICKNESS = 2  # d
PADDLE_MARGIN = 3  # m
CONTINUITY = 1.8  # c
SEED_DISTANCE = 27  # 2 r
EDGE_PADDING = 22
MARKER_RADIUS = 5
RELEASED_DISTRACTOR_PADDLES = 30  # beside the 2 k of the target paths

# -- Synthetic contours: Supp., "The Synthetic Contours Dataset"; "hGRU explains human contour
# detection" for the experiment --------------------------------------------------------------------
CONTOUR_LENGTHS = (5, 9, 14, 17)  # l, paddles in a contour
CONTOUR_CANVAS = 256  # pixels on a side, "all images in the SCD". The experiment says:
CONTOUR_EXPERIMENT_CANVAS = 150
GRID_CELLS = 32  # "A total of 32 paddles are placed along every row/column"
GRID_CELL = 0.25  # degrees of visual angle; 32 of them make the 8 degrees of the master grid
CONTOUR_PADDLE_LENGTH = 0.1  # degrees
LARGEST_SHEAR = 0.6  # SF, "between -0.6 and +0.6"
CONTOUR_DATASETS = 28  # "for every condition (28 total)": 4 lengths x 7 shears. The dataset says:
CONTOUR_SHEARS = 5  # "5 different relative-spacing conditions"

# -- Natural images and learnt connections: Supp., "Visualizing horizontal connections" ------------
BSDS_CROP = 300  # pixels on a side; "random crops to 300x300 pixels"
BSDS_ROTATION = 30.0  # degrees; "random rotations of +/- 30 degrees"
BSDS_EPOCHS = 1_000
COMMON_ORIENTATION = 90.0  # degrees, to which kernels are turned
EIGEN_VARIANCE = 0.8  # "80% cumulative variance cutoff"

# -- Training: Main, "Model implementation"; Supp., "Model architecture details" ------------------
LEARNING_RATE = 1e-3  # Adam
BATCH_SIZE = 32
EPOCHS = 2  # 4 for residual and per-pixel networks
EPOCHS_LARGE = 4
EVALUATE_EVERY = 1_000  # batches; the ALC is the mean test accuracy over these evaluations
RUNS = 5  # "the model that achieved the highest accuracy across 5 separate runs"

# -- Input stage: Supp., "Input stage" -------------------------------------------------------------
INPUT_KERNEL_SIZE = 7
GABOR_ORIENTATIONS = 12
GABOR_PHASES = 2
# Of the authors' released filters, pixels and radians; read off pictures of their file, see
# `models/filters.py`. The first three are those of Serre et al. (2007) for 7 x 7 pixels.
RELEASED_GABOR_WAVELENGTH = 3.5
RELEASED_GABOR_ENVELOPE = 2.8
RELEASED_GABOR_ASPECT = 0.3
RELEASED_GABOR_PHASE = 90.0  # radians, of the second phase; the first is 0

# -- Networks: Main, "Feedforward models" to "Per-pixel prediction models"; Supp., "Additional
# models" ------------------------------------------------------------------------------------------
FEEDFORWARD_KERNELS = {"small": (10, 36), "medium": (15, 16), "large": (20, 9)}  # size, number
DILATION = 2  # pixels; first layer of the medium network
DEPTHS = (1, 3, 5)  # layers of feature extraction: feedforward and highway
FRACTIONS = {"half": 2, "fifth": 5, "tenth": 10}  # of ResNet-152 and U-Net: one part in so many
FEEDFORWARD_MULTIPLE = 1  # x the hGRU, at one layer: "equal to each other and the hGRU"
RESNET152_MULTIPLE = 1000  # "nearly 1000x as many parameters"
FCN_MULTIPLE = 200  # "200x as many free parameters"
UNET_MULTIPLE = 350  # "over 350x as many parameters"
SEGNET_MULTIPLE = 400  # "400x more than the hGRU"
