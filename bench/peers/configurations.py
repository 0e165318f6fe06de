"""What is compared: each library in a listed set of configurations, of which the best at a size counts for it."""

import dataclasses
import os

WINDOWS, ANY, PEER, ROOFLINE = 'windows', 'any', 'peer', 'roofline'


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One way to run one library. In `command`, {directory}, {ranks}, {rank} and {bin} are filled in."""
    maker: str  # of the library: its name
    name: str
    role: str  # WINDOWS and ANY are Sluice
    program: str  # in the folder of built programs; without it the library is missing
    package: str  # that Debian has it in
    command: tuple
    environment: tuple = ()  # pairs
    launcher: str = ''  # must be there too
    each_rank: bool = False  # `command` starts one rank, not all of them
    speakers: int = 0  # ranks that take commands; 0: all

    @property
    def label(self):
        return f'{self.maker} ({self.name})' if self.name else self.maker


def _sluice(role, memory):
    return Configuration('Sluice', {'windows': 'windows', 'plain': 'any pointer'}[memory], role, 'sluice_peer', '',
                         ('{bin}/../../tools/sluice', 'run', '-n', '{ranks}', '{bin}/sluice_peer', '{directory}', memory))


def _open_mpi(name, *settings, environment=()):
    arguments = [word for setting in settings for word in ('--mca', *setting.split('='))]
    return Configuration('Open MPI', name, PEER, 'openmpi_peer', 'libopenmpi-dev', (
        'mpirun.openmpi', '--allow-run-as-root', '--oversubscribe', '--bind-to', 'none', '-n', '{ranks}', *arguments,
        '{bin}/openmpi_peer', '{directory}'), environment, launcher='mpirun.openmpi')


def _mpich(name, **settings):
    return Configuration('MPICH', name, PEER, 'mpich_peer', 'libmpich-dev',
                         ('mpirun.mpich', '-n', '{ranks}', '{bin}/mpich_peer', '{directory}'), tuple(settings.items()),
                         launcher='mpirun.mpich')


def _gloo(algorithm):
    return Configuration('Gloo', algorithm, PEER, 'gloo_peer', 'libgloo-dev',
                         ('{bin}/gloo_peer', '{directory}', '{rank}', '{ranks}', algorithm), each_rank=True)


def all_configurations():
    """Sluice first, then its peers, then the machine itself."""
    vader, ucx = ('pml=ob1', 'btl=vader,self'), ('pml=ucx', 'pml_ucx_tls=any', 'pml_ucx_devices=any')
    wide = 'btl_vader_eager_limit=32768', 'btl_vader_max_send_size=65536'
    result = [_sluice(WINDOWS, 'windows'), _sluice(ANY, 'plain'), _open_mpi('defaults')]
    for copy in ('none', 'cma'):
        for component in ('tuned', 'sm', 'han'):
            result.append(_open_mpi(f'{component}, {copy}', *vader, f'btl_vader_single_copy_mechanism={copy}',
                                    f'coll_{component}_priority=90'))
    # MPICH 4.0 has shared-memory collectives of its own (release_gather); asking for them changes nothing that can be measured.
    result += [
        _open_mpi('tuned, none, wide', *vader, 'btl_vader_single_copy_mechanism=none', *wide),
        _open_mpi('ucx posix', *ucx, environment=(('UCX_TLS', 'self,posix'),)),
        _open_mpi('ucx cma', *ucx, environment=(('UCX_TLS', 'self,posix,cma'),)),
        _mpich('defaults'),
        _mpich('ucx posix', UCX_TLS='self,posix'),
        _mpich('ucx sysv', UCX_TLS='self,sysv'),
        _mpich('ucx posix, yields', UCX_TLS='self,posix', MPIR_CVAR_POLLS_BEFORE_YIELD='1'),
        _gloo('ring'),
        _gloo('bcube'),
        Configuration('Memory', '', ROOFLINE, 'roofline', 'libhwy-dev', ('{bin}/roofline', '{directory}', '{ranks}'), speakers=1),
    ]
    return result


def missing(configuration, bin_folder):
    """What stands in the way of starting it, or nothing."""
    if not os.access(os.path.join(bin_folder, configuration.program), os.X_OK):
        return f'{configuration.program} was not built' + (
            f', for want of the package {configuration.package}' if configuration.package else '')
    launcher = configuration.launcher
    if launcher and not any(os.access(os.path.join(folder, launcher), os.X_OK) for folder in os.get_exec_path()):
        return f'{launcher} is not there'
    return ''
