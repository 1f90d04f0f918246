"""Routes of reports: statistics, forecast and contradictions of a namespace."""

from ebb.contract.reports import CONTRADICTIONS, FORECAST, RESOLVE, STATS
from fastapi import APIRouter

from api.http import operations
from api.http.dispatch import Reader, Writer
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["reports"], route_class=Route)

for operation in (STATS, FORECAST, CONTRADICTIONS):
    operations.add(routes, operation, Reader)
operations.add(routes, RESOLVE, Writer, problems=(404,))
