// The words that a section's list of fields uses: doc, in, at_least, one_of ...
#pragma once

#include "config/fields.h"

namespace tandem::app {

using config::above;
using config::at_least;
using config::doc;
using config::in;
using config::JsonText;
using config::later;
using config::NotYet;
using config::one_of;
using config::only;
using config::required;
using config::unset_means;

}  // namespace tandem::app
