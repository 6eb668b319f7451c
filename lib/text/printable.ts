/**
 * Characters that control a terminal, the ESC and CSI of its commands among them (C0, DEL, C1), and those that reverse the
 * order in which text is shown (bidirectional embeddings, overrides and isolates).
 */
const CONTROL = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

/** As in JSON, so that JSON remains JSON. */
const escapeCharacter = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Text for a terminal: control characters are escaped, except for tabs and line ends. */
export const printable = (text: string): string =>
  text.replace(CONTROL, (character, at: number) => {
    const isLineEnd = character === '\n' || (character === '\r' && text[at + 1] === '\n')
    return isLineEnd || character === '\t' ? character : escapeCharacter(character)
  })

/** Like `printable`, without line ends and tabs: text from elsewhere within a line or a cell. */
export const onOneLine = (text: string): string => text.replace(CONTROL, escapeCharacter)
