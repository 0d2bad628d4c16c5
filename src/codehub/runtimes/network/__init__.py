"""What a workspace may reach, and by which way: rules, the firewall's text, and the ways out that this machine has."""
