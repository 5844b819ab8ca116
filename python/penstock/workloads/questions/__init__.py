"""Questions about real data that need a stateful query."""

from penstock.workloads.questions import books, flights, nasa, taxi
from penstock.workloads.questions.question import Question

QUESTIONS: dict[str, Question] = {
    "flights": flights.QUESTION,
    "taxi": taxi.QUESTION,
    "books": books.QUESTION,
    "nasa": nasa.QUESTION,
}

__all__ = ["QUESTIONS", "Question"]
