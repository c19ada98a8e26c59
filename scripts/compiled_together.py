"""Files of the build that include several sources, which are compiled as one unit: those that troupe_together makes of files of
tests, and those that CMake makes of the sources of a folder (troupe_sources_together)."""

import pathlib
import re


def sources_of(unit):
    """The sources that such a file includes; of another source, the source alone; none of a file that was removed."""
    unit = pathlib.Path(unit)
    if "together" not in unit.parts and "Unity" not in unit.parts:
        return [str(unit)]
    return re.findall(r'^#include "(.*\.cpp)"$', unit.read_text(), re.MULTILINE) if unit.is_file() else []
