import { startDevnet } from '#lib/devnet/devnet.ts'

/** A devnet in a separate process, for a test to kill: `node devnet-process.ts <directory>`. */
const devnet = await startDevnet({
  directory: process.argv[2] ?? null,
  port: 0,
  closeMs: 50,
  passphrase: 'Standalone Network ; February 2017',
})
process.send?.(devnet.rpcUrl)
