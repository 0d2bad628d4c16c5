"""The operating system below everything: processes, accounts, privileges, forking."""
