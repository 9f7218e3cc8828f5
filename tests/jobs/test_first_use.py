"""The first use costs little: nothing is imported that is not needed."""

from tests.jobs.costs import cheapest, script


def test_help_and_import_are_instant():
    assert cheapest("-c", "import oodscope") <= 0.1
    assert cheapest("-m", "oodscope", "--help", times=8) <= 0.3


def test_the_package_imports_nothing_of_its_extras():
    heavy = ("torch", "ray", "fsspec", "s3fs", "boto3", "botocore", "gcsfs", "psycopg")
    done = script(f"import sys, oodscope; print([name for name in {heavy} if name in sys.modules])")
    assert done.stdout.strip() == "[]"


def test_evaluate_costs_at_most_as_much_again_as_torch():
    assert cheapest("-c", "import oodscope; oodscope.evaluate") <= 2 * cheapest("-c", "import torch")


def test_evaluate_imports_no_generator_compiler_or_model_library():
    done = script(
        """
        import sys
        import oodscope
        oodscope.evaluate
        heavy = ("oodscope.generation", "torch._dynamo", "torchvision", "timm", "matplotlib", "plotly")
        print([name for name in heavy if name in sys.modules])
        """
    )
    assert done.stdout.strip() == "[]"


def test_a_server_and_its_workers_import_no_torch():
    done = script(
        """
        import sys
        import oodscope.serve.server
        from oodscope.serve.worker import _IMPORTED
        for name in _IMPORTED:
            __import__(name)
        print("torch" in sys.modules)
        """
    )
    assert done.stdout.strip() == "False"
