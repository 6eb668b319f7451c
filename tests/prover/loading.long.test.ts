import { cp, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { ConfigurationError } from '#lib/config/environment.ts'
import { CIRCUIT_NAMES } from '#lib/prover/circuits.ts'
import { loadProver, type ProverSettings } from '#lib/prover/node/loading.ts'
import { fetchReferenceString } from '#lib/prover/node/reference-string.ts'
import { announceProofs } from '#lib/prover/progress.ts'
import { prover as standIn } from '#lib/prover/stand-in.ts'
import type { Prover } from '#lib/wallet/prover.ts'
import { registration } from './statements.ts'

const SETTINGS: ProverSettings = {
  network: 'local',
  proofs: 'real',
  module: undefined,
  circuits: undefined,
  referenceString: undefined,
  threads: undefined,
}
const silent = () => undefined

describe('the configured prover', () => {
  test('is real on a local network, and the stand-in with DEVNET_PROOFS=stand-in', async () => {
    const real = await loadProver(SETTINGS, silent)
    expect([real.check, real.destroy].map((part) => typeof part)).toEqual(['function', 'function'])
    expect(await loadProver({ ...SETTINGS, proofs: 'stand-in' }, silent)).toBe(standIn)
  })

  test('needs circuits on testnet, and errors name the variable', async () => {
    const load = (given: Partial<ProverSettings>) => loadProver({ ...SETTINGS, ...given }, silent)
    await expect(load({ network: 'testnet' })).rejects.toThrow(/^PROVER_CIRCUITS: is needed on a real network/)
    await expect(load({ circuits: 'none' })).rejects.toThrow(/^PROVER_CIRCUITS: none\/\w+.vk cannot be read/)
    await expect(load({ referenceString: 'none' })).rejects.toThrow(/^PROVER_CRS: none\/bn254_g1.dat cannot be read/)
    await expect(load({ referenceString: 'none' })).rejects.toThrow(ConfigurationError)
  })

  test('rejects a reference string other than the ceremony’s on testnet', async () => {
    const given = { circuits: 'lib/prover/circuits', referenceString: 'lib/prover/reference-string' } as const
    const loading = loadProver({ ...SETTINGS, network: 'testnet', ...given }, silent)
    await expect(loading).rejects.toThrow(
      'PROVER_CRS: bn254_g1.dat in lib/prover/reference-string is not of the ceremony that real networks use',
    )
  })

  test("takes the ceremony's string by default for the circuits of another deployment, even on a network named local", async () => {
    const folder = await mkdtemp(`${tmpdir()}/circuits-`)
    onTestFinished(() => rm(folder, { recursive: true }))
    for (const name of CIRCUIT_NAMES) {
      await cp(`lib/prover/circuits/${name}.json`, `${folder}/${name}.json`)
      const key = await readFile(`lib/prover/circuits/${name}.vk`)
      await writeFile(`${folder}/${name}.vk`, key.with(1_000, (key[1_000] ?? 0) ^ 1))
    }
    const [home, { asked, source }] = [await mkdtemp(`${tmpdir()}/home-`), await publishNothing()]
    onTestFinished(() => rm(home, { recursive: true }))
    vi.stubEnv('HOME', home)
    onTestFinished(() => void vi.unstubAllEnvs())
    const loading = loadProver({ ...SETTINGS, circuits: folder, referenceSource: source }, silent)
    await expect(loading).rejects.toThrow(`PROVER_CRS: the reference string could not be fetched into ${home}/.bb-crs`)
    expect(asked[0]).toBe('/g1.dat')
    // A copy of the embedded ledger's circuits needs the embedded ledger's string.
    const copied = await loadProver({ ...SETTINGS, circuits: 'lib/prover/circuits', referenceSource: source }, silent)
    expect(copied.verificationKeys).toBeDefined()
    await copied.destroy?.()
  })

  /** A publisher that has no string. */
  async function publishNothing() {
    const asked: (string | undefined)[] = []
    const server = createServer((request, response) => {
      asked.push(request.url)
      response.writeHead(404).end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    return { asked, source: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
  }

  describe('fetches the reference string of the ceremony', () => {
    const STRING = 'lib/prover/reference-string'

    /** A publisher of this project's string that breaks off the first `cuts` responses in the middle. */
    async function publish(cuts: number) {
      const asked: string[] = []
      const server = createServer(async (request, response) => {
        asked.push(`${request.url} ${request.headers.range}`)
        const content = await readFile(`${STRING}/bn254_${request.url?.slice(1)}`)
        response.writeHead(206, { 'content-length': content.length })
        if (asked.length > cuts) return void response.end(content)
        response.write(content.subarray(0, content.length / 2), () => response.destroy())
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void server.close())
      return { asked, source: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
    }

    async function folder(): Promise<string> {
      const made = await mkdtemp(`${tmpdir()}/string-`)
      onTestFinished(() => rm(made, { recursive: true }))
      return made
    }

    const said: string[] = []
    const load = (referenceString: string, referenceSource: string) => {
      const given = { circuits: 'lib/prover/circuits', referenceString, referenceSource }
      return loadProver({ ...SETTINGS, network: 'testnet', ...given }, (line) => said.push(line))
    }
    // The string that is fetched is whole, but this project's own: it is refused only for not being the ceremony's.
    const WHOLE = /^PROVER_CRS: bn254_g1.dat in .* is not of the ceremony/

    test('again after a broken connection, and only the needed range', async () => {
      const [into, { asked, source }] = [await folder(), await publish(1)]
      await expect(load(into, source)).rejects.toThrow(WHOLE)
      expect(asked).toEqual(['/g1.dat bytes=0-2097215', '/g1.dat bytes=0-2097215', '/g2.dat bytes=0-127'])
      expect(said.at(-1)).toBe(`The reference string is fetched into ${into}, 2 MB.`)
      for (const name of ['bn254_g1.dat', 'bn254_g2.dat']) {
        expect((await readFile(`${into}/${name}`)).equals(await readFile(`${STRING}/${name}`))).toBe(true)
      }
      await expect(load(into, source)).rejects.toThrow(WHOLE)
      expect(asked).toHaveLength(3)
    })

    test('from a publisher that sends no length, compresses, or ignores ranges', async () => {
      const answers: ((content: Buffer, response: ServerResponse, encodings: string) => void)[] = [
        (content, response) => void response.writeHead(206).end(content),
        (content, response, encodings) => {
          const isPlain = !encodings.includes('gzip')
          response.writeHead(206, isPlain ? {} : { 'content-encoding': 'gzip' })
          response.end(isPlain ? content : gzipSync(content))
        },
        (content, response) => {
          const whole = Buffer.concat([content, Buffer.alloc(1_000_000)])
          response.writeHead(200, { 'content-length': whole.length }).end(whole)
        },
      ]
      for (const answer of answers) {
        const server = createServer(async (request, response) => {
          const content = await readFile(`${STRING}/bn254_${request.url?.slice(1)}`)
          answer(content, response, String(request.headers['accept-encoding']))
        })
        await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
        onTestFinished(() => void server.close())
        const into = await folder()
        await fetchReferenceString(into, `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
        for (const name of ['bn254_g1.dat', 'bn254_g2.dat']) {
          expect((await readFile(`${into}/${name}`)).equals(await readFile(`${STRING}/${name}`))).toBe(true)
        }
      }
    })

    test('several times at once into one folder', async () => {
      const [into, { source }] = [await folder(), await publish(0)]
      await Promise.all(Array.from({ length: 4 }, () => fetchReferenceString(into, source)))
      expect((await readdir(into)).toSorted()).toEqual(['bn254_g1.dat', 'bn254_g2.dat'])
    })

    test('after an earlier download was cut off', async () => {
      for (const name of ['bn254_g1.dat', 'bn254_g2.dat']) {
        const [into, { asked, source }] = [await folder(), await publish(0)]
        await cp(STRING, into, { recursive: true })
        await truncate(`${into}/${name}`, 100)
        await expect(load(into, source)).rejects.toThrow(WHOLE)
        expect(asked).toHaveLength(2)
      }
    })

    test('and explains a failure, leaving no partial file', async () => {
      const [into, { asked, source }] = [await folder(), await publish(9)]
      await expect(load(into, source)).rejects.toThrow(
        /^PROVER_CRS: the reference string could not be fetched into .*: terminated$/,
      )
      expect(asked).toHaveLength(3)
      expect(await readdir(into)).toEqual([])
      await expect(load(into, 'http://127.0.0.1:1')).rejects.toThrow(/could not be fetched into .*: fetch failed$/)
    })
  })

  describe('in a module', () => {
    let directory: string
    beforeAll(async () => {
      directory = await mkdtemp(`${tmpdir()}/prover-`)
      return () => rm(directory, { recursive: true })
    })
    const load = (module: string) => loadProver({ ...SETTINGS, network: 'testnet', module }, silent)

    test('is the export of the file or package', async () => {
      await writeFile(`${directory}/prover.mjs`, 'export const prover = { prove: async () => new Uint8Array(3) }')
      const prover = await load(`${directory}/prover.mjs`)
      expect(await prover.prove(registration(7n))).toHaveLength(3)
    })

    test('must exist', async () => {
      await writeFile(`${directory}/none.mjs`, 'export const prover = {}')
      await expect(load(`${directory}/none.mjs`)).rejects.toThrow('RELAY_PROVER: the module exports no prover')
      await expect(load('no-such-package')).rejects.toThrow('no-such-package')
    })
  })
})

describe('progress', () => {
  /** A prover that takes two seconds of a clock for each proof. */
  function slowly() {
    let now = 0
    const said: string[] = []
    const prover: Prover = {
      prove: async () => {
        now += 2_000
        return new Uint8Array(1)
      },
    }
    return {
      said,
      announced: announceProofs(
        prover,
        3,
        (line) => said.push(line),
        () => now,
      ),
    }
  }

  test('announces each proof and the time for the remaining ones', async () => {
    const { said, announced } = slowly()
    for (let made = 0; made < 3; made += 1) await announced.prove(registration(7n))
    expect(said).toEqual(['proving 1 of 3', 'proving 2 of 3, about 4 s left', 'proving 3 of 3, about 2 s left'])
  })

  test('is in order for concurrent proofs, and continues past the announced total', async () => {
    const { said, announced } = slowly()
    await Promise.all([1, 2, 3, 4].map(() => announced.prove(registration(7n))))
    expect(said.map((line) => line.split(',')[0])).toEqual([
      'proving 1 of 3',
      'proving 2 of 3',
      'proving 3 of 3',
      'proving 4 of 4',
    ])
  })

  test('continues after a proof that fails', async () => {
    const said: string[] = []
    const failing: Prover = { prove: () => Promise.reject(new Error('no proof')) }
    const announced = announceProofs(failing, 2, (line) => said.push(line))
    await expect(announced.prove(registration(7n))).rejects.toThrow('no proof')
    await expect(announced.prove(registration(7n))).rejects.toThrow('no proof')
    expect(said).toEqual(['proving 1 of 2', 'proving 1 of 2'])
  })
})
