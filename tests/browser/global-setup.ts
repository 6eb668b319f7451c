import { buildIfStale } from '#lib/cli/build.ts'
import { installChromium } from './chromium.ts'

/** A browser, and a build of the sources at hand, before any test is timed. */
export default function setUp(): void {
  installChromium()
  buildIfStale()
}
