"""One exchange with a service: connections, deadlines, retries, and what went wrong."""
