"""`python -m densereward_ros.cli` is the `densereward` command."""

import sys

from densereward_ros.cli import main

sys.exit(main())
