"""What is known of contracts."""
