import { buildIfStale } from '#lib/cli/build.ts'

/** A build of the sources at hand, before any test is timed. */
export default function setUp(): void {
  buildIfStale()
}
