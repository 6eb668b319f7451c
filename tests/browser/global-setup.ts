import { buildIfStale } from '#lib/cli/build.ts'
import { installChromium } from './chromium.ts'

/** Installs a browser and builds the application before the first test. */
export default function setUp(): void {
  installChromium()
  buildIfStale()
}
