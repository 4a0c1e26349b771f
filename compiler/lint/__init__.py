"""What is wrong or odd between components, and between pipelines."""
