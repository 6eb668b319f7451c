/** An error with a closed set of codes. */
export abstract class CodedError<Code extends string> extends Error {
  /** The name of the class, written out because a build may shorten it. */
  static readonly className: string

  readonly code: Code

  constructor(code: Code, message: string, options: ErrorOptions = {}) {
    super(message, options)
    this.name = new.target.className
    this.code = code
  }
}

// A build or a frontend may bundle a class several times, so `instanceof` compares names.
Object.defineProperty(CodedError, Symbol.hasInstance, {
  value(this: typeof CodedError, value: unknown) {
    return value instanceof Error && value.name === this.className
  },
})
