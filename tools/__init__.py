"""Small programs of the project that are not part of the package."""
