/** SHA-256 of the two files of a reference string. */
export type Digests = Readonly<Record<'g1' | 'g2', string>>

/** The string of real networks, from Aztec's Ignition ceremony, in which 176 parties took part. */
export const IGNITION: Digests = {
  g1: 'd769ac6c98f8fab858a7e9967f2b7f181d8ad9fdcdf55438c915696febf0e99c',
  g2: '01797bfc4de5a96f0e516a9ea4537d18786dc30cb991aca4274c95822b69c32f',
}

/** The string of the embedded ledger, whose secret anyone can derive. */
export const EMBEDDED_DIGESTS: Digests = {
  g1: '92f1c78d19661f62bc4fed72f1d196df69bf43d0ceaf95523aa341c4e22e54ae',
  g2: 'ac6c10696d9c5e780beec1ddbb075362cb16199d5b15cd68210ea1865f218154',
}
