"""The one Spark application, where a checkout has it; an installed package has the same in its own folder."""

import sys

from lockstep.compute.submit.stage_epoch import main

if __name__ == "__main__":
    sys.exit(main())
