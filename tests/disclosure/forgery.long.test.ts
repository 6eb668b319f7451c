import { testForgeries } from './forgery-matrix.ts'

testForgeries((variant) => variant !== 'total recipient')
