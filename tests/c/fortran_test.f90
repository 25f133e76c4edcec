! SPDX-License-Identifier: Apache-2.0
! The Fortran module on all ranks of MPI: every type, sections, other ranks, and errors.
!   mpirun -n 3 fortran_test FOLDER
program fortran_test
  use, intrinsic :: iso_c_binding
  use mpi_f08
  use sealpoint
  implicit none

  integer :: failures = 0, all_failures
  integer :: rank, ranks
  character(300) :: folder
  type(sealpoint_job) :: job

  call get_command_argument(1, folder)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call check_not_open()
  call job%open(MPI_COMM_WORLD%MPI_VAL, keep_local=1)
  call check_types()
  call check_sections()
  call check_mistakes()
  call check_load_mistakes()
  call check_staged()
  call job%close()
  call MPI_Allreduce(failures, all_failures, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Finalize()
  if (rank == 0) print '(i0, a)', all_failures, ' failures'
  if (all_failures > 0) stop 1

contains

  subroutine check(is_right, what)
    logical, intent(in) :: is_right
    character(*), intent(in) :: what
    if (is_right) return
    failures = failures + 1
    print '(a, i0, 2a)', 'rank ', rank, ' failed: ', what
  end subroutine check

  subroutine check_error(status, message, expected, words)
    integer, intent(in) :: status, expected
    character(*), intent(in) :: message, words
    call check(status == expected .and. index(message, words) > 0, words // ', but: ' // message)
  end subroutine check_error

  function place(name) result(path)
    character(*), intent(in) :: name
    character(:), allocatable :: path
    path = trim(folder) // '/' // name
  end function place

  subroutine check_not_open()
    type(sealpoint_job) :: closed
    type(sealpoint_state) :: state
    integer(c_int64_t) :: step
    integer :: status
    character(:), allocatable :: message
    call closed%save(place('none'), 1_c_int64_t, state, status=status, message=message)
    call check_error(status, message, 1, 'the job is not open')
    call closed%load_newest(place('none'), state, step, status=status, message=message)
    call check_error(status, message, 1, 'the job is not open')
    call check(step == -1, 'no step')
    call closed%prune(place('none'), 2, status=status)
    call check(status == 1, 'prune of a closed job')
    call closed%resume_promotions('a', 'b', status=status)
    call check(status == 1, 'resume_promotions of a closed job')
    call check(.not. closed%wait_for_promotions(0_c_int64_t), 'wait of a closed job')
    call closed%open(MPI_COMM_NULL%MPI_VAL, status=status, message=message)
    call check_error(status, message, 1, 'MPI_COMM_NULL')
    call closed%close()
  end subroutine check_not_open

  ! Replicas of every type, which are written to before the load.
  subroutine check_types()
    integer(c_int8_t), target :: i1(2)
    integer(c_int16_t), target :: i2(2)
    integer(c_int32_t), target :: i4
    integer(c_int64_t), target :: i8(2)
    real(c_float), target :: r4(2, 3)
    real(c_double), target :: r8
    complex(c_float_complex), target :: c4(2)
    complex(c_double_complex), target :: c8(2)
    logical(c_bool), target :: flags(2)
    type(sealpoint_state) :: state
    integer(c_int64_t) :: step
    call state%add('i1', i1)
    call state%add('i2', i2)
    call state%add('i4', i4)
    call state%add('i8', i8)
    call state%add('r4', r4)
    call state%add('r8', r8)
    call state%add('c4', c4)
    call state%add('c8', c8)
    call state%add('flags', flags)
    i1 = [1_c_int8_t, -2_c_int8_t]; i2 = [3_c_int16_t, -4_c_int16_t]
    i4 = 5; i8 = [6_c_int64_t, -huge(i8)]
    r4 = reshape([1., 2., 3., 4., 5., 6.], [2, 3]); r8 = 0.1d0
    c4 = (1., 2.); c8 = (3d0, 4d0); flags = [.true., .false.]
    call job%save(place('types'), 1_c_int64_t, state)
    i1 = 0; i2 = 0; i4 = 0; i8 = 0; r4 = 0; r8 = 0; c4 = 0; c8 = 0; flags = .false.
    call job%load_newest(place('types'), state, step)
    call check(step == 1, 'step of types')
    call check(all(i1 == [1, -2]) .and. all(i2 == [3, -4]) .and. i4 == 5, 'small integers')
    call check(i8(1) == 6 .and. i8(2) == -huge(i8), 'large integers')
    call check(r4(2, 1) == 2 .and. r4(1, 3) == 5 .and. r8 == 0.1d0, 'reals')
    call check(all(c4 == (1., 2.)) .and. all(c8 == (3d0, 4d0)), 'complex')
    call check(logical(flags(1) .and. .not. flags(2)), 'logicals')
    call state%clear()
  end subroutine check_types

  ! Parts of a(6, 2 * ranks, 2): every second row of a larger array, backwards. Loaded whole by the
  ! ranks but the last one.
  subroutine check_sections()
    integer, allocatable, target :: wide(:, :, :), whole(:, :, :)
    integer, target :: nothing(0), line(12)
    type(sealpoint_state) :: state, all_state
    type(sealpoint_job) :: fewer
    type(MPI_Comm) :: comm
    integer(c_int64_t) :: step
    integer :: i, j, k, first
    first = 2 * rank + 1
    line = [(i, i=1, 12)]
    allocate (wide(12, first:first + 1, 0:1), source=-1)
    call state%add('a', wide(11:1:-2, :, :), shape=[6, 2 * ranks, 2], first=[1, first, 1])
    ! Rank 0 has all of it.
    if (rank == 0) then
      call state%add('b', line, shape=[12], first=[1])
    else
      call state%add('b', nothing, shape=[12_c_int64_t], first=[1_c_int64_t])
    end if
    do k = 0, 1
      do j = first, first + 1
        do i = 1, 6
          wide(13 - 2 * i, j, k) = i + 10 * j + 1000 * k
        end do
      end do
    end do
    call job%save(place('sections'), 7_c_int64_t, state)
    wide(11:1:-2, :, :) = 0
    call job%load_newest(place('sections'), state, step)
    call check(wide(11, first, 0) == 1 + 10 * first, 'first element')
    call check(wide(1, first + 1, 1) == 6 + 10 * (first + 1) + 1000, 'last element')
    call check(all(wide(2:12:2, :, :) == -1), 'what is between is untouched')
    call state%clear()
    call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < ranks - 1), rank, comm)
    if (rank == ranks - 1) return
    allocate (whole(6, 2 * ranks, 0:1), source=0)
    call fewer%open(comm%MPI_VAL)
    call all_state%add('a', whole)
    call all_state%add('b', line)
    line = 0
    call fewer%load_newest(place('sections'), all_state, step)
    call check(step == 7 .and. line(12) == 12, 'step on other ranks')
    do k = 0, 1
      do j = 1, 2 * ranks
        call check(all(whole(:, j, k) == [(i + 10 * j + 1000 * k, i=1, 6)]), 'whole')
      end do
    end do
    call fewer%close()
    call all_state%clear()
    call MPI_Comm_free(comm)
  end subroutine check_sections

  ! The last rank alone is wrong; all ranks hear of it, and the next call works.
  subroutine check_mistakes()
    character(4), target :: words(2)
    real(c_double), allocatable, target :: missing(:)
    real(c_double), target :: x(2)
    type(sealpoint_state) :: state
    integer :: what, status
    logical :: is_wrong
    character(:), allocatable :: message
    is_wrong = rank == ranks - 1
    words = 'text'
    x = 1
    do what = 1, 6
      call state%add('x', x)
      if (is_wrong) then
        select case (what)
        case (1); call state%add('words', words)
        case (2); call state%add('missing', missing)
        case (3); call state%add('y', x, shape=[2, 2], first=[1, 1])
        case (4); call state%add('y', x, shape=[2], first=[0])
        case (5); call state%add('y', x, shape=[2], first=[2])
        case (6); x = 2
        end select
      end if
      call job%save(place('mistakes'), 1_c_int64_t, state, status=status, message=message)
      select case (what)
      case (1); call check_error(status, message, 8, 'no dtype')
      case (2); call check_error(status, message, 1, 'not allocated')
      case (3); call check_error(status, message, 1, 'one element per dimension')
      case (4); call check_error(status, message, 1, 'first is less than 1')
      case (5); call check_error(status, message, 1, 'leaves dimension 0')
      case (6); call check_error(status, message, 1, 'replicas differ')
      end select
      call state%clear()
    end do
    x = 1
    call job%save(place('mistakes'), 1_c_int64_t, state, status=status, message=message)
    call check_error(status, message, 1, 'nothing was added')
    call state%add('x', x)
    call job%save(place('mistakes'), 1_c_int64_t, state)
    call state%add('y', x)
    call job%save(place('mistakes'), 2_c_int64_t, state, status=status, message=message)
    call check_error(status, message, 1, 'clear it before it changes')
    call job%prune(place('mistakes'), 1, status=status, message=message)
    call check_error(status, message, 1, 'keep_last')
    call job%prune(place('mistakes'), 0, status=status, message=message)
    call check_error(status, message, 1, 'keep_last is less than 1')
    call state%clear()
  end subroutine check_mistakes

  subroutine check_load_mistakes()
    real(c_double), target :: x(3)
    real(c_float), target :: small(2)
    type(sealpoint_state) :: state
    integer(c_int64_t) :: step
    integer :: status
    character(:), allocatable :: message
    call state%add('x', x)
    call job%load_newest(place('empty'), state, step)
    call check(step == -1, 'a series without checkpoints')
    call job%load_newest(place('mistakes'), state, step, status=status, message=message)
    call check_error(status, message, 10, 'shape')
    call state%clear()
    call state%add('x', small)
    call job%load_newest(place('mistakes'), state, step, allow_fallback=.true., status=status, &
                         message=message)
    call check_error(status, message, 10, 'stored as f64')
    call state%clear()
  end subroutine check_load_mistakes

  subroutine check_staged()
    real(c_double), target :: x(4)
    type(sealpoint_state) :: state
    integer(c_int64_t) :: step
    integer :: status
    character(:), allocatable :: message
    call state%add('x', x)
    do step = 1, 3
      x = real(step, c_double)
      call job%save(place('final'), step, state, local=place('local'))
    end do
    call check(job%wait_for_promotions(-1_c_int64_t), 'promotions')
    call job%resume_promotions(place('local'), place('final'))
    call job%prune(place('final'), keep_last=2, keep_every=100_c_int64_t)
    x = 0
    call job%load_newest(place('final'), state, step)
    call check(step == 3 .and. all(x == 3), 'staged')
    call job%resume_promotions(place('final'), place('final'), status=status, message=message)
    call check_error(status, message, 1, 'R-STG-12')
    call state%clear()
  end subroutine check_staged

end program fortran_test
