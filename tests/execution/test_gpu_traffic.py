"""What the benchmarks count in a program for a GPU, beside a count by hand."""

from benchmarks.gpu_traffic import Traffic, traffic

PROGRAM = """
HloModule example

%fused (p.0: f32[9,8], p.1: s32[], p.2: f32[9,8]) -> (f32[9,8], f32[8]) {
  %p.0 = f32[9,8]{1,0} parameter(0)
  %p.1 = s32[] parameter(1)
  %p.2 = f32[9,8]{1,0} parameter(2)
  %zero = s32[] constant(0)
  %row = f32[1,8]{1,0} dynamic-slice(%p.0, %p.1, %zero), dynamic_slice_sizes={1,8}
  %twice = f32[1,8]{1,0} add(%row, %row)
  %written = f32[9,8]{1,0} dynamic-update-slice(%p.2, %twice, %p.1, %zero)
  %flat = f32[8]{0} bitcast(%twice)
  ROOT %both = (f32[9,8]{1,0}, f32[8]{0}) tuple(%written, %flat)
}

%body (s: (s32[], f32[9,8], f32[9,8])) -> (s32[], f32[9,8], f32[9,8]) {
  %s = (s32[], f32[9,8]{1,0}, f32[9,8]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %a = f32[9,8]{1,0} get-tuple-element(%s), index=1
  %b = f32[9,8]{1,0} get-tuple-element(%s), index=2
  %f = (f32[9,8]{1,0}, f32[8]{0}) fusion(%a, %i, %b), kind=kLoop, calls=%fused
  %new = f32[9,8]{1,0} get-tuple-element(%f), index=0
  ROOT %t = (s32[], f32[9,8]{1,0}, f32[9,8]{1,0}) tuple(%i, %a, %new)
}

%condition (s.1: (s32[], f32[9,8], f32[9,8])) -> pred[] {
  %s.1 = (s32[], f32[9,8]{1,0}, f32[9,8]{1,0}) parameter(0)
  ROOT %yes = pred[] constant(true)
}

ENTRY %main (x: f32[9,8], y: f32[9,8]) -> f32[8,9] {
  %x = f32[9,8]{1,0} parameter(0)
  %y = f32[9,8]{1,0} parameter(1)
  %i.0 = s32[] constant(0)
  %start = (s32[], f32[9,8]{1,0}, f32[9,8]{1,0}) tuple(%i.0, %x, %y)
  %loop = (s32[], f32[9,8]{1,0}, f32[9,8]{1,0}) while(%start), condition=%condition, body=%body, TURNS
  %last = f32[9,8]{1,0} get-tuple-element(%loop), index=2
  ROOT %turned = f32[8,9]{1,0} transpose(%last), dimensions={1,0}
}
""".replace("TURNS", 'backend_config={"known_trip_count":{"n":"9"}}')


def test_loops_slices_and_what_is_written_in_place() -> None:
    """Nine turns read a row and an index and write a row and a vector; then all is read and written once."""
    row, everything = 4 * 8, 4 * 9 * 8
    assert traffic(PROGRAM) == Traffic(9 + 1, 9 * (row + 4 + row + row) + 2 * everything)
