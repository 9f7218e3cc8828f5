"""Every table of every kind of run, each made once."""

from functools import cache

from oodscope.document.table import Table
from oodscope.protocols.arrange import pivot
from oodscope.runs.attack.table import attack_table
from oodscope.runs.crossval.sheets import metric_sheets, overall_sheets
from oodscope.runs.crossval.study import study_metric
from oodscope.runs.crossval.summary import summary
from oodscope.runs.encoders.order import Order
from oodscope.runs.encoders.run import Encoder, EncoderRecord, Scorecard
from oodscope.runs.evaluation.seeds import over_seeds
from oodscope.runs.generated.table import calibration_table, separation_table
from oodscope.runs.models.run import Study, StudyMember, StudyModel
from tests.results.factory import make_result
from tests.runs.crossval import made_studies
from tests.runs.evaluation.test_seeds import run as seed
from tests.runs.generated.generated_world import study
from tests.runs.models.test_study import measured


@cache
def tables() -> dict[str, Table]:
    result, attack = make_result(), made_studies.attack()
    studies = [study_metric(made_studies.table(), name) for name in made_studies.table().metrics]
    models = Study(StudyMember(StudyModel(name=name), measured(0.7, 0.1)) for name in ("net_1", "net|2"))
    about = EncoderRecord(model=StudyModel(name="net|1"), run=result.record.id, head="words", words="a1b2")
    order = Order("knn", "", "near", "images", {"net|1": (1, 1)})
    encoders = Scorecard([Encoder(about, result.measurements)], [order], ["msp"])
    made = {
        "standard": result.table(),
        "full spectrum": result.table("full_spectrum", "fpr95_id_positive"),
        "seeds": over_seeds([seed(number) for number in range(3)]).table(),
        "attack": attack_table(attack),
        "attack by set": pivot(attack.result.measurements, "attack", "min_rank"),
        "detectors": separation_table(study()),
        "calibration": calibration_table(study()),
        "comparisons": made_studies.comparisons().table(),
        "crossval summary": summary(made_studies.table()),
        "models": models.table(),
        "models summary": models.summary(),
        "encoders": encoders.table("encoders"),
        "encoders' heads": encoders.table("heads"),
    }
    return made | {table.name: table for table in (*metric_sheets(studies[0]), *overall_sheets(studies))}
