import { resource } from '#lib/api/resource.ts'
import { readPulse } from '#lib/dashboard/pulse.ts'
import { readOnly } from '#lib/db/read-only.ts'
import { Refusal } from '#lib/refusal/refusal.ts'
import { readOperator } from '../require-operator.ts'

/** The state that open dashboard pages poll to decide whether to reload. */
export const { GET, POST, PUT, PATCH, DELETE, OPTIONS } = resource(
  {
    GET: async () => {
      const service = await readOperator()
      if (!service) throw new Refusal('unauthenticated')
      return await readPulse(readOnly(await service.database()))
    },
  },
  { readers: 'ourselves' },
)
