/* Why the installed PAPI reads no events of the kernel's; nothing where it does. */
#include <papi.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  if (PAPI_library_init(PAPI_VER_CURRENT) != PAPI_VER_CURRENT) return 1;
  for (int n = 0; n < PAPI_num_components(); n++) {
    const PAPI_component_info_t *component = PAPI_get_component_info(n);
    if (strcmp(component->name, "perf_event") == 0 && component->disabled) fputs(component->disabled_reason, stdout);
  }
  return 0;
}
