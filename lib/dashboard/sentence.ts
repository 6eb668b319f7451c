/** What a name in a sentence stands for. An account is an address, or the sub of a user of the identity provider. */
export interface Reference {
  type: 'transfer' | 'payout' | 'batch' | 'job' | 'contractor' | 'organisation' | 'channel' | 'account' | 'operator'
  id: string
}

/** A word of a sentence that leads to the page of what it names. */
export interface Mention {
  text: string
  of: Reference
}

/** A sentence, or a part of one. */
export type Sentence = readonly (string | Mention)[]

/** The names in braces of a template. */
export const namesIn = (template: string): string[] => [...template.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)

/**
 * Replaces each name in braces by its phrase. A clause in brackets is left out if a name in it has none; elsewhere a noun takes
 * its place. The sentence begins with a capital, unless it begins with a mention.
 */
export function fillIn(
  template: string,
  phraseFor: (name: string) => Sentence | undefined,
  nounFor: (name: string) => string,
): Sentence {
  const fill = (part: string, isClause: boolean): Sentence => {
    const pieces = part.split(/(\{\w+\})/).map((piece) => {
      const [name] = namesIn(piece)
      if (name === undefined) return [piece]
      return phraseFor(name) ?? (isClause ? undefined : [nounFor(name)])
    })
    return pieces.includes(undefined) ? [] : pieces.flatMap((piece) => piece ?? [])
  }
  const filled = template
    .split(/(\[.*?\])/)
    .flatMap((part) => (part.startsWith('[') ? fill(part.slice(1, -1), true) : fill(part, false)))
    .filter((part) => part !== '')
  const [first, ...rest] = filled
  if (typeof first !== 'string') return filled
  return [first.charAt(0).toUpperCase() + first.slice(1), ...rest]
}

export const plainText = (sentence: Sentence): string =>
  sentence.map((part) => (typeof part === 'string' ? part : part.text)).join('')
