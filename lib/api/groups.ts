/** The groups of the reference, in their order. */
export const GROUPS = {
  Sessions: 'Signing in with a wallet (SEP-10) or with an access token of an identity provider.',
  Transfers: 'Sponsoring a confidential transfer (CAP-15): the sender pays no network fee.',
  Contractors: 'The directory of those who are paid: public data only, never a secret.',
  Batches: 'Disbursements, their payouts, and how far they have come.',
  Me: 'Who the caller is, and in which roles.',
  Funding: 'Test funds, and what backs the confidential balances.',
  Relay: 'Batches that the headless relay pays from accounts of its own.',
  'On your device': 'Operations that need a key which never leaves the user’s device: they always answer 501.',
  Service: 'Whether the service is well, and this document.',
} as const
