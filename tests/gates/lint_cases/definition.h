// Part of every_check.cpp: a finding in a header of ours is shown.
#pragma once

int misc_definitions_in_headers() {
  return 1;
}
