"""A folder of its own for the application: Python puts a script's folder first on the path it imports from."""
