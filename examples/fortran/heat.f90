! SPDX-License-Identifier: Apache-2.0
! Heat in a plate on MPI ranks, which saves its state every 50 steps and resumes when it is run
! again, on the same or on another number of ranks:
!   mpirun -n 4 heat plate 100
!   mpirun -n 3 heat plate 200
program heat
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  use sealpoint
  implicit none

  integer, parameter :: nx = 40, ny = 30        ! of the whole plate; its columns are divided
  real(real64), allocatable, target :: u(:, :)  ! this rank's columns, with a halo on all sides
  real(real64), target :: time = 0              ! equal on all ranks
  type(sealpoint_job) :: job
  type(sealpoint_state) :: state
  integer(int64) :: step, end_step
  integer :: rank, ranks, first, last, i, j
  character(200) :: series, argument

  call get_command_argument(1, series)
  call get_command_argument(2, argument)
  read (argument, *) end_step
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  first = rank * ny / ranks + 1
  last = (rank + 1) * ny / ranks
  allocate (u(0:nx + 1, first - 1:last + 1), source=0.0_real64)
  do j = first, last
    do i = 1, nx
      u(i, j) = i + 100 * j
    end do
  end do

  ! Without the halo, which the neighbours have. An error of any call ends the program on all ranks.
  call state%add('u', u(1:nx, first:last), shape=[nx, ny], first=[1, first])
  call state%add('time', time)
  call job%open(MPI_COMM_WORLD%MPI_VAL)
  call job%load_newest(trim(series), state, step)
  if (step < 0) step = 0  ! nothing was ever saved
  if (rank == 0) print '(i0, a, i0)', ranks, ' ranks start at step ', step

  do while (step < end_step)
    call exchange_halo()
    u(1:nx, first:last) = u(1:nx, first:last) + 0.125_real64 * &
      (u(0:nx - 1, first:last) + u(2:nx + 1, first:last) + u(1:nx, first - 1:last - 1) &
       + u(1:nx, first + 1:last + 1) - 4 * u(1:nx, first:last))
    time = time + 0.125_real64
    step = step + 1
    if (mod(step, 50_int64) == 0) then
      call job%save(trim(series), step, state)
      call job%prune(trim(series), keep_last=2)
    end if
  end do
  if (rank == 0) print '(a, i0, a, f0.3)', 'step ', step, ' is at time ', time

  call job%close()  ! before MPI ends
  call state%clear()
  call MPI_Finalize()

contains

  subroutine exchange_halo()
    integer :: left, right
    left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    right = merge(rank + 1, MPI_PROC_NULL, rank < ranks - 1)
    call MPI_Sendrecv(u(:, first), nx + 2, MPI_DOUBLE_PRECISION, left, 0, u(:, last + 1), nx + 2, &
                      MPI_DOUBLE_PRECISION, right, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(u(:, last), nx + 2, MPI_DOUBLE_PRECISION, right, 0, u(:, first - 1), nx + 2, &
                      MPI_DOUBLE_PRECISION, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine exchange_halo

end program heat
