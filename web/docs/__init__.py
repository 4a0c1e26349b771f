"""The pages of docs/: the parts of them that are written by what they describe.

A page is written by hand. What stands in it between two markers is not, and `make docs` replaces it:

    <!-- generated -->            or, where a page has several parts,  <!-- generated: metrics -->
    ...
    <!-- /generated -->
"""
