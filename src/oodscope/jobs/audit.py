"""AuditJob: the search for images and classes that are where they should not be, as a configuration."""

from pathlib import Path

from oodscope.execution.progress import Progress
from oodscope.jobs.model import ModelData, ModelSpec, build_classifier, with_identity_head
from oodscope.jobs.task import DataTask
from oodscope.models.classifier.classifier import Classifier
from oodscope.report.page.audit import write_audit
from oodscope.runs.audit.audit import audit
from oodscope.runs.audit.run import Audit


class AuditJob(DataTask):
    """One audit.

    Parameters
    ----------
    model : its features find near duplicates that a hash does not; none leaves it at the hash.
    """

    model: ModelSpec | None = None
    output: str = "audit"

    def check(self) -> None:
        super().check()
        if self.model is not None:
            self.model.check()


def execute_audit(job: AuditJob, progress: Progress) -> tuple[Audit, Path]:
    """The findings, and the page that was written."""
    job.check()
    benchmark = job.open_benchmark(progress)
    classifier: Classifier | None = None
    if job.model is not None:
        # features are compared, not classes: the network keeps those of its weights
        data = ModelData(transform=benchmark.transform)
        built = build_classifier(job.model, data, device=job.device, features_only=True, progress=progress)
        classifier = built.classifier.with_default_transform(benchmark.transform)
        if built.origin is not None and built.origin.headless:
            classifier = with_identity_head(classifier)
    found = audit(benchmark, classifier, batch_size=job.batch_size, progress=progress)
    return found, write_audit(found, benchmark, Path(job.output))
