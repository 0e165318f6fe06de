#include "layers/rotary.h"

#include <cmath>

namespace sluice {

template <typename T>
Rotary<T>::Rotary(Index length, Index width, double base) : cosine_(length, width / 2), sine_(length, width / 2) {
  for (Index position = 0; position < length; ++position)
    for (Index i = 0; i < width / 2; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(width);
      const double angle = static_cast<double>(position) * std::pow(base, exponent);
      cosine_.row(position)[i] = static_cast<T>(std::cos(angle));
      sine_.row(position)[i] = static_cast<T>(std::sin(angle));
    }
}

template <typename T>
void Rotary<T>::turn(View<T> x, Index sequence, T direction) const {
  const Index half = cosine_.columns();
  for (Index i = 0; i < x.rows; ++i) {
    const T* cosine = cosine_.row(i % sequence);
    const T* sine = sine_.row(i % sequence);
    for (Index head = 0; head < x.columns; head += 2 * half) {
      T* low = x.row(i) + head;
      T* high = low + half;
      for (Index j = 0; j < half; ++j) {
        const T a = low[j];
        const T b = high[j];
        low[j] = a * cosine[j] - b * direction * sine[j];
        high[j] = b * cosine[j] + a * direction * sine[j];
      }
    }
  }
}

template class Rotary<float>;
template class Rotary<double>;

}  // namespace sluice
