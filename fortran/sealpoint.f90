! SPDX-License-Identifier: Apache-2.0
!
! Sealpoint's Fortran module (Fortran 2018): collective saves and loads of distributed arrays over
! MPI. It is compiled together with sealpoint_fortran.c, by the compilers and with the MPI of the
! program; the CMake target sealpoint::fortran does this.
!
! Layout: Fortran stores the first dimension fastest, and Sealpoint the last one. An array a(nx, ny)
! is therefore stored as a tensor of shape [ny, nx], without a copy, and C and Python see a[iy][ix].
!
! All procedures of a job are collective: all ranks call them in the same order. If one rank fails,
! all ranks get the same error. If `status` is absent, an error stops the program. Otherwise
! `status` gets an error code (0: success; the codes are those of sealpoint.h) and `message` the
! error in one printable line.
module sealpoint
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private
  public :: sealpoint_job, sealpoint_state

  ! The arrays of this rank. Create a state once per run, and use it for all saves and loads.
  type :: sealpoint_state
    private
    type(c_ptr) :: handle = c_null_ptr
  contains
    procedure, private :: add_whole, add_part, add_large_part
    ! add(name, array): an array or scalar that all ranks have. The values must be equal on all
    !   ranks; a save of different values fails.
    ! add(name, array, shape, first): a part of a distributed array, of which `shape` has the
    !   extents. `first` has the position of the part's first element, counted from 1.
    ! Local. The type is REAL or COMPLEX of 4 or 8 bytes per part, INTEGER of 1 to 8 bytes or
    ! LOGICAL(C_BOOL). Sections such as a(2:n-1, :), without halo cells, are not copied. The array
    ! is borrowed until clear: declare it TARGET, and neither deallocate nor reallocate it. If an
    ! array is wrong, the next save or load fails on all ranks. Nothing can be added after a save.
    generic :: add => add_whole, add_part, add_large_part
    procedure :: clear => state_clear  ! local
  end type sealpoint_state

  ! The communicator and the resources of saves. Close the job before MPI_Finalize.
  type :: sealpoint_job
    private
    type(c_ptr) :: handle = c_null_ptr
    integer(c_int32_t) :: keep_local = 0
  contains
    procedure :: open => job_open
    procedure :: save => job_save
    procedure :: load_newest => job_load_newest
    procedure :: prune => job_prune
    procedure :: resume_promotions => job_resume_promotions
    procedure :: wait_for_promotions => job_wait_for_promotions
    procedure :: close => job_close
  end type sealpoint_job

  type, bind(C) :: c_text
    type(c_ptr) :: data
    integer(c_int64_t) :: size
  end type c_text

  interface
    function c_state_new() bind(C, name='sealpoint_fortran_state_new') result(state)
      import :: c_ptr
      type(c_ptr) :: state
    end function
    subroutine c_state_free(state) bind(C, name='sealpoint_fortran_state_free')
      import :: c_ptr
      type(c_ptr), value :: state
    end subroutine
    subroutine c_add(state, name, name_size, array, ndim, shape, first) &
        bind(C, name='sealpoint_fortran_add')
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: state
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), value :: name_size
      type(*), dimension(..), intent(inout) :: array
      integer(c_int32_t), value :: ndim
      integer(c_int64_t), intent(in), optional :: shape(*), first(*)
    end subroutine
    function c_open(comm, keep_local, job, error) bind(C, name='sealpoint_fortran_open') &
        result(code)
      import :: c_ptr, c_int, c_int32_t
      integer(c_int), value :: comm
      integer(c_int32_t), value :: keep_local
      type(c_ptr), intent(out) :: job
      type(c_ptr), intent(inout) :: error
      integer(c_int32_t) :: code
    end function
    subroutine c_close(job) bind(C, name='sealpoint_fortran_close')
      import :: c_ptr
      type(c_ptr), value :: job
    end subroutine
    function c_save(job, state, series, series_size, step, local, local_size, error) &
        bind(C, name='sealpoint_fortran_save') result(code)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: job, state
      character(kind=c_char), intent(in) :: series(*), local(*)
      integer(c_int64_t), value :: series_size, step, local_size
      type(c_ptr), intent(inout) :: error
      integer(c_int32_t) :: code
    end function
    function c_load(job, state, series, series_size, allow_fallback, step, error) &
        bind(C, name='sealpoint_fortran_load') result(code)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: job, state
      character(kind=c_char), intent(in) :: series(*)
      integer(c_int64_t), value :: series_size
      integer(c_int32_t), value :: allow_fallback
      integer(c_int64_t), intent(out) :: step
      type(c_ptr), intent(inout) :: error
      integer(c_int32_t) :: code
    end function
    function c_prune(job, series, series_size, keep_last, keep_every, error) &
        bind(C, name='sealpoint_fortran_prune') result(code)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: series(*)
      integer(c_int64_t), value :: series_size, keep_every
      integer(c_int32_t), value :: keep_last
      type(c_ptr), intent(inout) :: error
      integer(c_int32_t) :: code
    end function
    function c_resume(job, local, local_size, series, series_size, keep_local, error) &
        bind(C, name='sealpoint_fortran_resume_promotions') result(code)
      import :: c_ptr, c_char, c_int32_t, c_int64_t
      type(c_ptr), value :: job
      character(kind=c_char), intent(in) :: local(*), series(*)
      integer(c_int64_t), value :: local_size, series_size
      integer(c_int32_t), value :: keep_local
      type(c_ptr), intent(inout) :: error
      integer(c_int32_t) :: code
    end function
    function c_wait(job, longest_ms) bind(C, name='sealpoint_fortran_wait_for_promotions') &
        result(is_done)
      import :: c_ptr, c_int32_t, c_int64_t
      type(c_ptr), value :: job
      integer(c_int64_t), value :: longest_ms
      integer(c_int32_t) :: is_done
    end function
    function c_error_text(error) bind(C, name='sealpoint_error_text') result(text)
      import :: c_ptr, c_text
      type(c_ptr), value :: error
      type(c_text) :: text
    end function
    subroutine c_error_free(error) bind(C, name='sealpoint_error_free')
      import :: c_ptr
      type(c_ptr), value :: error
    end subroutine
  end interface

contains

  subroutine add_whole(self, name, array)
    class(sealpoint_state), intent(inout) :: self
    character(*), intent(in) :: name
    type(*), dimension(..), intent(inout), target :: array
    if (.not. c_associated(self%handle)) self%handle = c_state_new()
    call c_add(self%handle, name, len(name, c_int64_t), array, 0)
  end subroutine add_whole

  subroutine add_part(self, name, array, shape, first)
    class(sealpoint_state), intent(inout) :: self
    character(*), intent(in) :: name
    type(*), dimension(..), intent(inout), target :: array
    integer(c_int32_t), intent(in) :: shape(:), first(:)
    call self%add_large_part(name, array, int(shape, c_int64_t), int(first, c_int64_t))
  end subroutine add_part

  subroutine add_large_part(self, name, array, shape, first)
    class(sealpoint_state), intent(inout) :: self
    character(*), intent(in) :: name
    type(*), dimension(..), intent(inout), target :: array
    integer(c_int64_t), intent(in) :: shape(:), first(:)
    integer(c_int32_t) :: ndim
    ndim = size(shape, kind=c_int32_t)
    if (size(first) /= ndim) ndim = -1
    if (.not. c_associated(self%handle)) self%handle = c_state_new()
    call c_add(self%handle, name, len(name, c_int64_t), array, ndim, shape, first)
  end subroutine add_large_part

  subroutine state_clear(self)
    class(sealpoint_state), intent(inout) :: self
    call c_state_free(self%handle)
    self%handle = c_null_ptr
  end subroutine state_clear

  ! Opens the job on the ranks of an MPI communicator: an INTEGER, or the MPI_VAL of a
  ! TYPE(MPI_Comm). `keep_local`: number of promoted staged saves to keep on local storage.
  subroutine job_open(self, comm, keep_local, status, message)
    class(sealpoint_job), intent(inout) :: self
    integer, intent(in) :: comm
    integer, intent(in), optional :: keep_local
    integer, intent(out), optional :: status
    character(:), allocatable, intent(out), optional :: message
    character(:), allocatable :: line
    integer(c_int32_t) :: code
    type(c_ptr) :: error
    error = c_null_ptr
    call self%close()
    if (present(keep_local)) self%keep_local = keep_local
    code = c_open(comm, self%keep_local, self%handle, error)
    line = outcome(code, error, present(status))
    if (present(status)) status = code
    if (present(message)) message = line
  end subroutine job_open

  ! Saves the state as a new checkpoint of a series. After success, the checkpoint survives a crash.
  ! With `local`, a directory of this node, the checkpoint is committed there, and copied to the
  ! series in the background (a staged save).
  subroutine job_save(self, series, step, state, local, status, message)
    class(sealpoint_job), intent(in) :: self
    character(*), intent(in) :: series
    integer(c_int64_t), intent(in) :: step
    class(sealpoint_state), intent(in) :: state
    character(*), intent(in), optional :: local
    integer, intent(out), optional :: status
    character(:), allocatable, intent(out), optional :: message
    character(:), allocatable :: place
    character(:), allocatable :: line
    integer(c_int32_t) :: code
    type(c_ptr) :: error
    error = c_null_ptr
    place = ''
    if (present(local)) place = local
    code = c_save(self%handle, state%handle, series, len(series, c_int64_t), step, place, &
                  len(place, c_int64_t), error)
    line = outcome(code, error, present(status))
    if (present(status)) status = code
    if (present(message)) message = line
  end subroutine job_save

  ! Fills the arrays of the state from the newest checkpoint of a series, which any number of ranks
  ! may have saved. `step` gets its step, or -1 if no checkpoint was ever committed: begin anew. The
  ! checkpoint and the states of all ranks must have the same tensors. After an error the content of
  ! the arrays is unspecified. `allow_fallback`: skip damaged checkpoints.
  subroutine job_load_newest(self, series, state, step, allow_fallback, status, message)
    class(sealpoint_job), intent(in) :: self
    character(*), intent(in) :: series
    class(sealpoint_state), intent(in) :: state
    integer(c_int64_t), intent(out) :: step
    logical, intent(in), optional :: allow_fallback
    integer, intent(out), optional :: status
    character(:), allocatable, intent(out), optional :: message
    integer(c_int32_t) :: may_fall_back
    character(:), allocatable :: line
    integer(c_int32_t) :: code
    type(c_ptr) :: error
    error = c_null_ptr
    may_fall_back = 0
    if (present(allow_fallback)) may_fall_back = merge(1, 0, allow_fallback)
    code = c_load(self%handle, state%handle, series, len(series, c_int64_t), may_fall_back, &
                  step, error)
    line = outcome(code, error, present(status))
    if (present(status)) status = code
    if (present(message)) message = line
  end subroutine job_load_newest

  ! Deletes the checkpoints of a series but the newest `keep_last` (at least 2) and those whose step
  ! is a multiple of `keep_every`. Rank 0 deletes.
  subroutine job_prune(self, series, keep_last, keep_every, status, message)
    class(sealpoint_job), intent(in) :: self
    character(*), intent(in) :: series
    integer, intent(in) :: keep_last
    integer(c_int64_t), intent(in), optional :: keep_every
    integer, intent(out), optional :: status
    character(:), allocatable, intent(out), optional :: message
    integer(c_int64_t) :: every
    character(:), allocatable :: line
    integer(c_int32_t) :: code
    type(c_ptr) :: error
    error = c_null_ptr
    every = 0
    if (present(keep_every)) every = keep_every
    code = c_prune(self%handle, series, len(series, c_int64_t), keep_last, every, error)
    line = outcome(code, error, present(status))
    if (present(status)) status = code
    if (present(message)) message = line
  end subroutine job_prune

  ! Completes the staged saves of an earlier job. Call this before load_newest.
  subroutine job_resume_promotions(self, local, series, status, message)
    class(sealpoint_job), intent(in) :: self
    character(*), intent(in) :: local, series
    integer, intent(out), optional :: status
    character(:), allocatable, intent(out), optional :: message
    character(:), allocatable :: line
    integer(c_int32_t) :: code
    type(c_ptr) :: error
    error = c_null_ptr
    code = c_resume(self%handle, local, len(local, c_int64_t), series, len(series, c_int64_t), &
                    self%keep_local, error)
    line = outcome(code, error, present(status))
    if (present(status)) status = code
    if (present(message)) message = line
  end subroutine job_resume_promotions

  ! Local. Waits for this rank's copies of staged saves. Returns true if none is left.
  function job_wait_for_promotions(self, longest_ms) result(is_done)
    class(sealpoint_job), intent(in) :: self
    integer(c_int64_t), intent(in) :: longest_ms
    logical :: is_done
    is_done = c_wait(self%handle, longest_ms) /= 0
  end function job_wait_for_promotions

  subroutine job_close(self)
    class(sealpoint_job), intent(inout) :: self
    call c_close(self%handle)
    self%handle = c_null_ptr
  end subroutine job_close

  ! The error in one line; frees it. Stops the program if nobody looks at the status.
  function outcome(code, error, is_looked_at) result(line)
    integer(c_int32_t), intent(in) :: code
    type(c_ptr), intent(in) :: error
    logical, intent(in) :: is_looked_at
    character(:), allocatable :: line
    line = ''
    if (code /= 0) line = text_of(c_error_text(error))
    call c_error_free(error)
    if (code == 0 .or. is_looked_at) return
    write (error_unit, '(2a)') 'sealpoint: ', line
    error stop 1
  end function outcome

  function text_of(text) result(line)
    type(c_text), intent(in) :: text
    character(:), allocatable :: line
    character(kind=c_char), pointer :: bytes(:)
    integer :: i
    call c_f_pointer(text%data, bytes, [text%size])
    allocate (character(len=text%size) :: line)
    do i = 1, len(line)
      line(i:i) = bytes(i)
    end do
  end function text_of

end module sealpoint
