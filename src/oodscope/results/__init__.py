"""What an evaluation leaves behind: scores, measurements, records, the store, published tables."""

from oodscope.results.comparison import Comparison, Comparisons
from oodscope.results.crossval import CrossCell, CrossValidationTable
from oodscope.results.grid import Cell, Column, Grid, Row
from oodscope.results.measurement import MEAN, Measurement, Tuning
from oodscope.results.measurements import Measurements
from oodscope.results.opened import OpenedRuns, open_runs
from oodscope.results.record import RunRecord, SetRecord
from oodscope.results.result import Result
from oodscope.results.scoretable import ScoreTable
from oodscope.results.seeds import OverSeeds, SeedSummary, over_seeds
from oodscope.results.store import ResultStore
from oodscope.results.study import Study, StudyMember, StudyModel
from oodscope.results.tables import FORMATS, Table, pivot

__all__ = [
    "FORMATS",
    "MEAN",
    "Cell",
    "Column",
    "Comparison",
    "Comparisons",
    "CrossCell",
    "CrossValidationTable",
    "Grid",
    "Measurement",
    "Measurements",
    "OpenedRuns",
    "OverSeeds",
    "Result",
    "ResultStore",
    "Row",
    "RunRecord",
    "ScoreTable",
    "SeedSummary",
    "SetRecord",
    "Study",
    "StudyMember",
    "StudyModel",
    "Table",
    "Tuning",
    "open_runs",
    "over_seeds",
    "pivot",
]
