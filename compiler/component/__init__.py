"""What a config names: components and their families, the pipeline they make, what each tells."""
