import { testForgeries } from './forgery-matrix.ts'

// A total ends in every code of the verifier.
testForgeries((variant) => variant === 'total recipient')
