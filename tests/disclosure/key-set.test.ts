import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { chooseKeySet } from '#lib/disclosure/node/prover.ts'
import { EMBEDDED_STRING } from '#lib/prover/node/embedded.ts'

const CONTAINER = 'Standalone Network ; February 2017'

test('follows the configured reference string rather than the passphrase of the network', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'string-'))
  try {
    for (const name of ['bn254_g1.dat', 'bn254_g2.dat']) await writeFile(join(folder, name), 'another string')
    expect(await chooseKeySet(CONTAINER, folder)).toBe('ignition')
    expect(await chooseKeySet('a private network', EMBEDDED_STRING)).toBe('embedded')
    expect(await chooseKeySet(CONTAINER, undefined)).toBe('embedded')
    expect(await chooseKeySet('a private network', undefined)).toBe('ignition')
  } finally {
    await rm(folder, { recursive: true })
  }
})
