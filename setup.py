from setuptools import find_namespace_packages, setup

# Why: the code lives in core/, plugins/ and kernels/, and is imported as tokenwire.core and so on.
found = find_namespace_packages(include=["core*", "plugins*", "kernels*"])
setup(packages=["tokenwire." + package for package in found])
