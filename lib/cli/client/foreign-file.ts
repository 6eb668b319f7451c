import { createReadStream } from 'node:fs'
import { MAX_FILE_BYTES } from '#lib/text/json.ts'

/** Reads a request or a bundle: no more of it than one byte above the limit, which its parser refuses. */
export async function readForeignFile(path: string): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of createReadStream(path, { end: MAX_FILE_BYTES })) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString('utf8')
}
