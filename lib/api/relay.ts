import { z } from 'zod'
import { Refusal } from '#lib/refusal/refusal.ts'
import { readRunTerms } from '#lib/relay/run-terms.ts'
import { EXAMPLE } from './examples.ts'
import { inGroup, operation } from './operation.ts'

const relayShape = z.object({
  publicKey: z
    .object({ kty: z.literal('EC'), crv: z.literal('P-256'), x: z.string(), y: z.string() })
    .meta({ description: 'the key that amounts are sealed to, a JWK' }),
  channels: z
    .array(
      z.object({
        address: z.string(),
        available: z.boolean().meta({ description: 'whether it could take a run of yours now' }),
      }),
    )
    .meta({ description: 'the accounts that can be a spender' }),
  maxChannels: z.int().meta({ description: 'how many channels a run may be divided among' }),
  latestLedger: z.int(),
  ledgersPerPayout: z.int().meta({ description: 'how many ledgers a channel needs for each payout' }),
  marginLedgers: z.int().meta({ description: 'how many ledgers a delegation must last beyond those of its payouts' }),
})

export const RELAY_OPERATIONS = inGroup('Relay', [
  operation({
    id: 'getRelay',
    extension: true,
    route: 'GET /relay',
    caller: 'session',
    summary: 'Get the channels that can pay a batch from your balance',
    description: [
      'What a client needs before it delegates to the relay. Take neither key nor channels from this response alone:',
      'compare them with the deployment document, or with the document of a relay host that you trust.',
    ].join(' '),
    requires: ({ settings: { batch, token } }) => {
      if (!batch || token === undefined) throw new Refusal('runs-not-wired')
      return { key: batch.key, token }
    },
    response: {
      description: 'The terms of a run',
      schema: relayShape,
      example: {
        publicKey: {
          kty: 'EC',
          crv: 'P-256',
          x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
          y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
        },
        channels: [{ address: EXAMPLE.payee, available: true }],
        maxChannels: 5,
        latestLedger: 1_204_331,
        ledgersPerPayout: 3,
        marginLedgers: 36,
      },
    },
    refusals: ['runs-not-wired'],
    handle: async ({ service, session, settings, ready }) =>
      await readRunTerms(await service.database(), {
        ...ready,
        account: session.sub,
        network: service.network,
        maxChannels: settings.runChannels,
      }),
  }),
])
