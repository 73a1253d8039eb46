#include "formats/source.hpp"
