"""Several hosts on one machine, for tests and measurements that need a network between them: hosts.py says what they are."""

from .hosts import Hosts, missing
from .job import Ended, JobTimeout, Running, rank_places
from .namespaces import NetworkError, names_of, sweep
from .network import INTERFACE
from .open_mpi import missing_open_mpi
