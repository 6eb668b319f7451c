import type { Operation } from './operation.ts'

const shared = { method: 'post', group: 'On your device', caller: 'session', selfContained: true } as const
const NOT_WIRED =
  'is not wired to the API: run it from the command-line client tooling, on the device that holds the keys'

export const DEVICE_OPERATIONS: Operation[] = [
  {
    ...shared,
    id: 'withdraw',
    path: '/withdraw',
    summary: 'Withdraw: never done here',
    refusals: { 501: [`withdraw ${NOT_WIRED}`] },
  },
  {
    ...shared,
    id: 'disclose',
    path: '/auditor/disclose',
    summary: 'Disclose to an auditor: never done here',
    refusals: { 501: [`auditor disclosure ${NOT_WIRED}`] },
  },
]
