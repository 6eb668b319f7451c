import { cp, truncate, writeFile } from 'node:fs/promises'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openProver } from '#lib/prover/node/prover.ts'
import { readKnownString } from '#lib/prover/node/reference-string.ts'
import { IGNITION } from '#lib/prover/string-digests.ts'
import { CIRCUITS, copyOf, edit, flip, STRING } from './files.ts'
import { ACCOUNT, registration } from './statements.ts'

describe('an unusable folder is named in the error', () => {
  const open = (circuits: string, referenceString = STRING) => openProver({ circuits, referenceString, threads: 1 })

  test('when it does not exist', async () => {
    await expect(open('no/such/folder')).rejects.toThrow(/no\/such\/folder\/\w+\.json cannot be read/)
    await expect(open(CIRCUITS, 'no/such/folder')).rejects.toMatchObject({
      code: 'files-invalid',
      message: 'no/such/folder/bn254_g1.dat cannot be read',
    })
  })

  test('when a circuit is for another version of the interface', async () => {
    const folder = await copyOf(CIRCUITS)
    await edit(`${folder}/transfer.json`, (bytes) => {
      const program = JSON.parse(bytes.toString())
      program.abi.parameters.pop()
      return JSON.stringify(program)
    })
    await expect(open(folder)).rejects.toThrow('transfer.json is for 24 public inputs in place of 25')
    await cp(`${CIRCUITS}/register.vk`, `${folder}/transfer.vk`)
    await cp(`${CIRCUITS}/transfer.json`, `${folder}/transfer.json`)
    await expect(open(folder)).rejects.toThrow('transfer.vk is for 6 public inputs in place of 25')
  })

  test('when a circuit has other secrets, is not a circuit, or has damaged bytecode', async () => {
    const folder = await copyOf(CIRCUITS)
    const file = `${folder}/register.json`
    await edit(file, (bytes) => bytes.toString().replace('"name":"sk"', '"name":"key"'))
    await expect(open(folder)).rejects.toThrow('register.json takes the secrets key in place of sk')
    await cp(`${CIRCUITS}/register.json`, file)
    await edit(file, (bytes) =>
      bytes.toString().replace('"name":"sk","type":{"kind":"field"}', '"name":"sk","type":{"kind":"boolean"}'),
    )
    await expect(open(folder)).rejects.toThrow('register.json has parameters that are not field elements: sk')
    await writeFile(file, '{}')
    await expect(open(folder)).rejects.toThrow('register.json is not a compiled circuit')
    await cp(`${CIRCUITS}/register.json`, file)
    await edit(file, (bytes) => bytes.toString().replace(/("bytecode":".{400})./, '$1/'))
    await expect(open(folder)).rejects.toThrow('the bytecode in ')
  })

  test('when a key is truncated', async () => {
    const folder = await copyOf(CIRCUITS)
    await truncate(`${folder}/withdraw.vk`, 1_700)
    await expect(open(folder)).rejects.toThrow('withdraw.vk has 1700 bytes; a verification key has 1760')
  })

  test('when the reference string is truncated, or is not one', async () => {
    const folder = await copyOf(STRING)
    await truncate(`${folder}/bn254_g2.dat`, 127)
    await expect(open(CIRCUITS, folder)).rejects.toThrow('bn254_g2.dat has 127 bytes in place of 128')
    await edit(`${folder}/bn254_g1.dat`, (bytes) => flip(bytes, 40))
    await expect(open(CIRCUITS, folder)).rejects.toThrow('bn254_g1.dat does not begin with the generator')
    await truncate(`${folder}/bn254_g1.dat`, 2_000_000)
    await expect(open(CIRCUITS, folder)).rejects.toThrow('bn254_g1.dat has 2000000 bytes; 2097216 are needed')
  })

  test('when the string is not that of the ceremony', async () => {
    await expect(readKnownString(STRING, IGNITION, 'of the ceremony')).rejects.toThrow(
      'bn254_g1.dat in lib/prover/reference-string is not of the ceremony',
    )
  })
})

test('a statement without its secrets is rejected', async () => {
  const prover = await openProver({ circuits: CIRCUITS, referenceString: STRING, threads: 1 })
  onTestFinished(prover.destroy)
  const { witness: _, ...statement } = registration(7n)
  await expect(prover.prove({ ...statement, account: ACCOUNT })).rejects.toMatchObject({
    code: 'statement-invalid',
    message: expect.stringContaining('needs the secrets'),
  })
})
