import { parseArgs } from 'node:util'
import { ConfigurationError, environment } from '#lib/config/environment.ts'
import { prepareChannels } from '#lib/relay/setup.ts'
import { composeRelay } from '#lib/server/relay.ts'
import { startService } from '#lib/server/start.ts'
import { keepRelayKeys } from './relay-keys.ts'
import { besideService } from './shared-parts.ts'

const USAGE = `npm run relay:setup -- --channels N [--keys FILE]

Makes N channel accounts fit to pay on the configured network: created, registered, funded. Run it again at will.
Without --keys they are those of CHANNEL_SEEDS. With it they are those of FILE, which is made, or added to, before
anything is asked of the network: lines of CHANNEL_SEEDS, RELAY_PRIVATE_KEY and RELAY_PUBLIC_KEY for the environment.
No key is ever printed.`

async function main(): Promise<void> {
  const options = { channels: { type: 'string' }, keys: { type: 'string' }, help: { type: 'boolean' } } as const
  const { values } = parseArgs({ options })
  if (values.help) return console.log(USAGE)
  const given = besideService(environment())
  const count = values.channels === undefined ? undefined : Number(values.channels)
  if (count !== undefined && !(Number.isInteger(count) && count >= 1 && count <= 100)) {
    throw new ConfigurationError('--channels', 'not a whole number between 1 and 100')
  }
  const keys = values.keys === undefined ? {} : keepRelayKeys(values.keys, count ?? 1, given)
  const configuration = { ...given, ...keys }
  if (configuration.CHANNEL_SEEDS.length < (count ?? 1)) {
    throw new ConfigurationError('CHANNEL_SEEDS', 'has fewer channels than are wanted: name a file with --keys')
  }
  const service = await startService(configuration)
  try {
    const relay = await composeRelay(service)
    const channels = relay.channels.slice(0, count)
    await prepareChannels({ ...relay, channels }, service.faucet, (channel, step) => console.log(`${channel}  ${step}`))
  } finally {
    await service.close()
  }
}

await main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error)
  process.exit(1)
})
