"""The routes: each checks, asks one part of the service, and answers. No logic of their own."""
