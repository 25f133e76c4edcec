! SPDX-License-Identifier: Apache-2.0
program consumer
  use sealpoint
  implicit none
  type(sealpoint_job) :: job
  integer :: status
  call job%save('nowhere', 1_8, sealpoint_state(), status=status)
  if (status /= 1) stop 1
end program consumer
