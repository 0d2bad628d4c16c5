"""Only root has accounts to give: without it there is nothing to test about them."""

import os

collect_ignore = [] if os.geteuid() == 0 else ["test_accounts.py"]
