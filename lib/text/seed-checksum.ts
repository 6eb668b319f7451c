/** The value of each base32 character, by character code. */
const VALUES = new Uint8Array(128)
for (const [value, character] of [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'].entries()) {
  VALUES[character.charCodeAt(0)] = value
}

/** The bits before a strkey's checksum: the version byte and 32 bytes of payload. */
const PAYLOAD_BITS = 33 * 8

/**
 * Whether 56 base32 characters end in a valid checksum (SEP-23: CRC-16/XMODEM, low byte first). The library's check of a
 * strkey is many times slower, and a body can contain a quarter of a million candidates.
 */
export function hasStrKeyChecksum(strkey: string): boolean {
  let crc = 0
  let sum = 0
  let held = 0
  let bits = 0
  for (let place = 0; place < strkey.length; place += 1) {
    held = ((held << 5) | (VALUES[strkey.charCodeAt(place)] ?? 0)) & 0xfff
    bits += 5
    const pending = bits % 8
    if (pending >= 5) continue
    const byte = (held >> pending) & 0xff
    if (bits - pending > PAYLOAD_BITS) sum = (sum << 8) | byte
    else crc = appendByte(crc, byte)
  }
  return sum === (((crc & 0xff) << 8) | (crc >> 8))
}

function appendByte(before: number, byte: number): number {
  let crc = before ^ (byte << 8)
  for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff
  return crc
}
